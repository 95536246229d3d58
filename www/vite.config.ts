import { defineConfig } from "vite";
import { offline } from "./audit/offline-plugin.ts";

export default defineConfig({
  // The pages can be served from any folder.
  base: "./",
  plugins: [offline()],
  worker: { format: "es" },
  // The package finds its worker and its WebAssembly beside itself.
  optimizeDeps: { exclude: ["remuda"] },
  build: {
    target: "es2022",
    // A strict policy allows no data: URLs.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    rollupOptions: { input: { lanes: "index.html", watchtower: "watchtower.html", bps: "bps.html", audit: "audit.html" } },
  },
});
