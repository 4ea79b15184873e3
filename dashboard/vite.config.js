// SPDX-License-Identifier: Apache-2.0
// Builds the pages into dist/, which is checked in and built into hone-tracker (cmake/EmbedFolder.cmake). The names of
// the files are fixed, so that a change of the pages is a change of three files; the tracker has browsers ask whether
// they changed.
import { defineConfig } from 'vite';

export default defineConfig({
  build: {
    target: 'es2022',
    modulePreload: { polyfill: false },
    assetsInlineLimit: 0,
    rollupOptions: {
      output: { entryFileNames: 'app.js', assetFileNames: 'app[extname]' },
    },
  },
});
