import inpage from "inpage/vite";

// The plugin serves and builds /sw.js, and sends the headers that give the CPU device several threads from Vite's own servers. Your site's
// server needs them, too.
export default { plugins: [inpage()] };
