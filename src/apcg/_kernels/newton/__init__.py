"""Values, slopes and curvatures of the losses, and sums of them."""
