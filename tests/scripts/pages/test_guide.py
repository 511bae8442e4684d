"""The examples of docs/guide.md, as test_pages.py holds those of the other pages."""

import unittest

import test_pages


class Guide(test_pages.PageTest):
    def test_guide(self):
        self.assertLess(12, self.hold("docs/guide.md"))


if __name__ == "__main__":
    unittest.main()
