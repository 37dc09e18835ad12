"""Is the dream true?"""
