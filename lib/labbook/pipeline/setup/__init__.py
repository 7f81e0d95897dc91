"""What studies need of machines and clouds: check, install."""
