"""The demo: nine small worlds with known matches, mined by the same jobs as everything else."""
