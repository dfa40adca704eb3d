// SPDX-License-Identifier: Apache-2.0
/// <reference types="vitest/config" />
import react from "@vitejs/plugin-react";
import { defineConfig } from "vite";

// `npm run dev` talks to a studio that runs already: STUDIO=http://127.0.0.1:8000 STUDIO_TOKEN=... npm run dev
const studio = process.env["STUDIO"] ?? "http://127.0.0.1:8000";
const token = process.env["STUDIO_TOKEN"];

export default defineConfig({
  plugins: [react()],
  base: "/",
  build: {
    outDir: "../src/voxgrad/studio/static",
    emptyOutDir: true,
    target: "es2023",
    sourcemap: false,
    reportCompressedSize: false,
    modulePreload: { polyfill: false },
    chunkSizeWarningLimit: 2000,
    // Names without hashes: a rebuild of the same source is the same files, and a change is a small diff.
    rollupOptions: {
      output: {
        entryFileNames: "assets/[name].js",
        chunkFileNames: "assets/[name].js",
        assetFileNames: "assets/[name][extname]",
      },
    },
  },
  worker: {
    format: "es",
    rollupOptions: { output: { entryFileNames: "assets/[name].js", chunkFileNames: "assets/[name].js" } },
  },
  server: {
    proxy: {
      "/api": {
        target: studio,
        ws: true,
        changeOrigin: true,
        headers: { origin: studio, ...(token ? { authorization: `Bearer ${token}` } : {}) },
      },
    },
  },
  test: { include: ["src/**/*.test.ts"], environment: "node" },
});
