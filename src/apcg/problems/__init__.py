"""Problems: ERM, its dual and primal forms, its intercept, and f + psi over blocks."""
