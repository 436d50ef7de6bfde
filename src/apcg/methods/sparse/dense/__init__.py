"""Working sets on dense columns, and dense paths of the squared loss."""
