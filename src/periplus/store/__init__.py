"""What is kept, and how is it kept whole? One package per database, behind `model.ports`. SQL stands nowhere else."""
