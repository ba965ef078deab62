"""A small real pipeline over the New York flights data of 2013; ``make demo`` runs it."""
