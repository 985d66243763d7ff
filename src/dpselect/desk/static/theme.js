// Runs before the page is drawn, so that a chosen theme does not flash in the other one.

{
  let kept = null;
  try {
    kept = localStorage.getItem("dpselect-theme");
  } catch {
    // Without storage the system decides.
  }
  if (kept === "light" || kept === "dark") document.documentElement.dataset.theme = kept;
}
