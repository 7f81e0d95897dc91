"""Reading and trying a study by hand: rows by parameters, widgets, and how objects look in a cell."""
