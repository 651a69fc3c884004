"""Objects as authors see them: kinds and their types, what a body has and lacks, conditions, whose fields are whose."""
