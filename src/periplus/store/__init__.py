"""What is kept, and how is it kept whole? One package per database, behind `model.crawl_store`. SQL stands nowhere else."""
