"""Methods of other papers, by name: SAG, prox-SVRG, accelerated SDCA."""
