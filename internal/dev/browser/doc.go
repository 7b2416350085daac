// Package browser has only tests. They control the emulator's console in a real
// Chromium. The emulator runs as another process.
package browser
