"""Methods side by side, and the paper's table and figures."""
