"""Elements chosen by position: `x[...]`, gathering, scattering."""
