"""Parts of the forms: their fields, sections and names. The steps are in the flows at the top of the package."""
