// Follows the preferred colours while the reader has chosen none. The style sheet of Debian 12's
// furo has no rule for that case.
const preference = matchMedia('(prefers-color-scheme: dark)');
const follow = () => {
  if ((localStorage.getItem('theme') ?? 'auto') === 'auto') {
    document.body.dataset.theme = preference.matches ? 'dark' : 'light';
  }
};
preference.addEventListener('change', follow);
document.addEventListener('DOMContentLoaded', follow);
