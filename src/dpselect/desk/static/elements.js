// Elements, numbers in words, and messages beside the field that they are about. Text only ever becomes text, never HTML.

export const element = (id) => document.getElementById(id);

// A new element; attributes that are false or null are left out, and functions become listeners.
export function make(name, attributes = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (value === false || value === null || value === undefined) continue;
    if (typeof value === "function") made.addEventListener(key, value);
    else made.setAttribute(key, value === true ? "" : value);
  }
  made.append(...children.filter((child) => child !== null && child !== undefined));
  return made;
}

export const show = (id, shown) => {
  element(id).hidden = !shown;
};

// A number without the last digits of its float: 0.3, 1e-7, 12,345.
export function brief(number, digits = 4) {
  if (number === null || number === undefined) return "–";
  const few = Number(Number(number).toPrecision(digits));
  if (few !== 0 && Math.abs(few) < 1e-4) return few.toExponential();
  return few.toLocaleString("en", { maximumSignificantDigits: digits });
}

// A number that is rounded so that it never says less (above) or more (below) than it is: for costs, and for what is left.
function rounded(number, digits, direction) {
  if (!(number > 0)) return brief(number);
  const step = 10 ** (Math.floor(Math.log10(number)) + 1 - digits);
  // Sums of floats may miss a round number by a little.
  return brief(direction(number / step + (direction === Math.ceil ? -1e-6 : 1e-6)) * step, digits);
}

export const above = (number, digits = 4) => rounded(number, digits, Math.ceil);
export const below = (number, digits = 4) => rounded(number, digits, Math.floor);

// By how much one person changes a probability at most, as guarantees say it: in percent if it is little, as a power of ten if it is huge.
export function change(epsilon) {
  if (epsilon < 0.1) return `at most ${above(100 * Math.expm1(epsilon), 3)} percent`;
  return `a factor of at most ${epsilon < Math.log(1e6) ? above(Math.exp(epsilon), 3) : `10^${Math.ceil(epsilon / Math.LN10)}`}`;
}

export const whole = (number) => Number(number).toLocaleString("en", { maximumFractionDigits: 0 });

// A number of things: 1 item, 2,000 items.
export const count = (number, thing) => `${whole(number)} ${thing}${number === 1 ? "" : "s"}`;

export const asSentence = (text) => text && `${text[0].toUpperCase()}${text.slice(1)}${text.endsWith(".") ? "" : "."}`;

// The number that a text states, with a point or a comma before the decimals; NaN if it states none.
export function stated(text) {
  const plain = text.trim().replace(/^(\d+),(\d{1,2})$/, "$1.$2");
  return plain === "" ? NaN : Number(plain);
}

export function options(select, choices, chosen) {
  select.replaceChildren(...choices.map(([value, text]) => make("option", { value }, text)));
  if (choices.some(([value]) => value === chosen)) select.value = chosen;
}

// Show a message beside a field, or clear it; say whether there is such a field on the page.
export function setError(id, message) {
  const place = element(`${id}-error`);
  if (place === null) return false;
  place.textContent = message;
  const control = element(id);
  if (control !== null) {
    if (message) control.setAttribute("aria-invalid", "true");
    else control.removeAttribute("aria-invalid");
  }
  return true;
}

export function clearErrors(ids) {
  for (const id of ids) setError(id, "");
}

// Show messages beside their fields, given as {id: message}, and put the keyboard on the first of these fields.
export function setErrors(wrong) {
  for (const [id, message] of Object.entries(wrong)) setError(id, message);
  const first = [...document.querySelectorAll("[id]")].find(({ id }) => id in wrong);
  if (first !== undefined) focusOn(first.id);
}

// Put the keyboard on a field, opening what hides it.
export function focusOn(id) {
  const target = element(id);
  if (target === null) return;
  for (let each = target.parentElement; each !== null; each = each.parentElement) if (each.tagName === "DETAILS") each.open = true;
  target.focus();
}

// Enable a button again, and give it back the keyboard that it lost when it was disabled.
export function enable(id) {
  element(id).disabled = false;
  if (document.activeElement === document.body) element(id).focus({ preventScroll: true });
}

export function say(id, text, kind = "") {
  const place = element(id);
  place.className = `${place.className.replace(/\b(good|warn|bad)\b/g, "").trim()} ${kind}`.trim();
  place.replaceChildren(...(text ? [text] : []));
}

export function download(name, type, text) {
  const address = URL.createObjectURL(new Blob([text], { type }));
  const link = make("a", { href: address, download: name });
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(address), 60_000);
}

// Copy a text; browsers offer the clipboard only to secure pages, others copy a selection.
export async function copyText(text, place) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    getSelection().selectAllChildren(place);
    return document.execCommand("copy");
  }
}
