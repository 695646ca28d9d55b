"""From a job to this rank's plan: passes that rewrite the job, then lowering into chains, registers and streams."""
