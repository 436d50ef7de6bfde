"""Working sets of groups: group lasso, multi-task lasso."""
