// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

// Package mediatype returns the media type to serve a file as, by its name alone: its content may
// have been written by anybody, and a browser that guesses would run it.
package mediatype

import (
	"path"
	"strings"
)

// Of returns the type of a file, and whether a browser may show it in place. What may hold
// scripts it is not to show, and what is not known is bytes.
func Of(name string) (kind string, show bool) {
	switch strings.ToLower(path.Ext(name)) {
	case ".txt", ".log", ".md", ".py", ".sh", ".go", ".rs", ".c", ".h", ".yaml", ".yml", ".toml", ".ini", ".cfg", ".patch", ".diff":
		return "text/plain; charset=utf-8", true
	case ".csv":
		return "text/csv; charset=utf-8", true
	case ".json", ".ipynb":
		return "application/json", true
	case ".png":
		return "image/png", true
	case ".jpg", ".jpeg":
		return "image/jpeg", true
	case ".gif":
		return "image/gif", true
	case ".webp":
		return "image/webp", true
	case ".mp4":
		return "video/mp4", true
	case ".webm":
		return "video/webm", true
	case ".mp3":
		return "audio/mpeg", true
	case ".wav":
		return "audio/wav", true
	case ".html", ".htm":
		return "text/html; charset=utf-8", false
	case ".svg":
		return "image/svg+xml", false
	case ".xml":
		return "application/xml", false
	case ".js", ".mjs":
		return "text/javascript; charset=utf-8", false
	case ".css":
		return "text/css; charset=utf-8", false
	case ".pdf":
		return "application/pdf", false
	case ".zip":
		return "application/zip", false
	case ".gz", ".tgz":
		return "application/gzip", false
	}
	return "application/octet-stream", false
}
