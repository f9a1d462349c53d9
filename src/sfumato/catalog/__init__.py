"""What is protected: units, tables, columns with their domains, and the budget."""
