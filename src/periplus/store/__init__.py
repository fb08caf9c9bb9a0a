"""What is kept, and how is it kept whole? Protocols in `ports`, one package per database. SQL stands nowhere else."""
