// Before the first paint: the theme that was chosen last, or else the system's.
const chosen = localStorage.getItem("manul-theme")
if (chosen) document.documentElement.dataset.theme = chosen
