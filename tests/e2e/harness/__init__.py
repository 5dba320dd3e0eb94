"""What the end-to-end tests share: the program under test, MCP connections of both eras, message validation."""
