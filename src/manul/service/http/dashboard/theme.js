// Runs before the first paint: applies the last chosen theme, or else the system's.
const chosen = localStorage.getItem("manul-theme")
if (chosen) document.documentElement.dataset.theme = chosen
