"""Which colours and letters do a survey's drawings share, by day and by night?"""

PALETTE = """
svg { --paper: #fbfaf7; --card: #ffffff; --ink: #22272b; --soft: #5d676e; --line: #e2e0d9; --edge: #6d8f92; --edge-out: #b39a63;
  --teal: #8cc4c3; --teal-line: #2f7f86; --amber: #edd08f; --amber-line: #b98e2f; --red: #e6a495; --red-line: #b4513f;
  --grey: #dcdfda; --grey-line: #8d938f; --blue: #b7c9e0; --blue-line: #5b7fae; }
@media (prefers-color-scheme: dark) {
  svg { --paper: #15191c; --card: #1c2125; --ink: #e6eaea; --soft: #98a3a9; --line: #30373c; --edge: #6fa3a6; --edge-out: #a08a55;
    --teal: #2c5f64; --teal-line: #63b3b6; --amber: #72592a; --amber-line: #d0a853; --red: #7d3b2f; --red-line: #dd8672;
    --grey: #333b3e; --grey-line: #838c8b; --blue: #34496a; --blue-line: #85a8d8; }
}
"""
FONT = """.paper { fill: var(--paper); }
text { font-family: system-ui, "Segoe UI", "Noto Sans", "Liberation Sans", sans-serif; font-size: 12px; fill: var(--ink); }
"""
