"""CustomResourceDefinitions from models, and their reference."""
