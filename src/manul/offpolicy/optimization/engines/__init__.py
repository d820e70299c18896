"""Engines that train the candidates on other machines, with the results of this one."""
