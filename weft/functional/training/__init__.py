"""What a step of training does to gradients."""
