// Package browser has no code: its tests drive the emulator's console in a real
// Chromium, against the program as a process of its own.
package browser
