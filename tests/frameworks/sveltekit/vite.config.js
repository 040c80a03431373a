import { sveltekit } from "@sveltejs/kit/vite";
import inpage from "inpage/vite";

export default { plugins: [sveltekit(), inpage()] };
