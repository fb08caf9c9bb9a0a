"""The parts that this feature declares."""

from periplus.features import Feature

FEATURE = Feature(
    "Reads pages as a browser shows them, and behind logins.",
    file_tables=("login",),
    services={
        "rendering": "periplus_browser.rendered:PageRendering",
        "login": "periplus_browser.logins:login_of",
        "logins": "periplus_browser.logins:logins_of",
        "login sessions": "periplus_browser.session:LoginSessions",
    },
)
