//! The theme of the site: VitePress' own, with the colours of the demo and the playground.

import DefaultTheme from "vitepress/theme";
import Playground from "./playground/Playground.vue";
import "./theme.css";

export default {
  extends: DefaultTheme,
  enhanceApp({ app }) {
    app.component("Playground", Playground);
  },
};
