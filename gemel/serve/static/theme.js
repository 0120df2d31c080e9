// Before the first paint, so that nobody sees the wrong colours flash by.
const chosenTheme = localStorage.getItem("gemel-theme");
if (chosenTheme === "light" || chosenTheme === "dark") document.documentElement.dataset.theme = chosenTheme;
