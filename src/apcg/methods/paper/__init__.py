"""The paper's methods: Algorithms 1 to 5, SDCA, AFG, and APCG that adapts."""
