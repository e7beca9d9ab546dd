// Before the page is painted: the theme that the reader chose, else that of the system.
const chosen = localStorage.getItem("lake-theme");
if (chosen) document.documentElement.dataset.theme = chosen;
