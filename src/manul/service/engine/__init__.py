"""The service without HTTP: loops that decide, learn and recover."""
