// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package files

import (
	"net/http"
	"reflect"

	"sandpit.dev/api/filelink"
	"sandpit.dev/api/httpapi"
	"sandpit.dev/api/rest/idempotency"
	"sandpit.dev/api/service"
	v1 "sandpit.dev/api/v1"
	"sandpit.dev/sandbox"
)

// API serves the operations on files. It is safe for concurrent use.
type API struct {
	Files   service.Files // required
	MaxFile int64         // the most bytes of one raw upload

	Points    service.Points    // required
	Links     *filelink.Links   // nil: no links to files are made
	Sandboxes service.Sandboxes // required
}

// Bounds of bodies, in bytes.
const (
	maxJSON     = 12 << 20 // of a request that carries a file
	maxJSONFile = 8 << 20  // of a file that is answered within JSON
)

// Operations returns the rows of the coat's table that the API serves.
func (a *API) Operations() []httpapi.Operation {
	const anyBytes = "application/octet-stream"
	return []httpapi.Operation{
		httpapi.Raw("readOrListFiles", "GET /sandboxes/{id}/files", "List a directory as an array of FileEntry (of FileInfo with detail=true), or read a file as FileContent.", http.StatusOK, a.readOrList).
			Out(reflect.TypeFor[[]v1.FileEntry]()).
			Also(http.StatusOK, "", reflect.TypeFor[[]v1.FileInfo](), "").
			Also(http.StatusOK, "", reflect.TypeFor[v1.FileContent](), "").
			Also(http.StatusNotModified, "", nil, "The file is the one that If-None-Match names."),
		httpapi.Op("writeFileJSON", "POST /sandboxes/{id}/files", "Write a file from JSON.", http.StatusOK, a.writeFileJSON).MaxBody(maxJSON).
			Also(http.StatusCreated, "", reflect.TypeFor[v1.FileInfo](), "The file is new.").
			Example(v1.WriteFile{Path: new("main.py"), Content: new("print('hi')\n")}).
			Extend(idempotency.Keyless("twice is as once")),
		httpapi.Raw("writeFileByQuery", "PUT /sandboxes/{id}/files", "Write a file from the raw body.", http.StatusNoContent, a.writeFile).Media(anyBytes, ""),
		httpapi.Op("deleteFileByQuery", "DELETE /sandboxes/{id}/files", "Delete a file or a directory.", http.StatusNoContent, a.removeFile),
		httpapi.Raw("readFile", "GET /sandboxes/{id}/files/{path...}", "Read a file raw; ranges work. Its media type is that of its name's ending. A directory is listed as by readOrListFiles, with the header Sandpit-File-Type: dir.", http.StatusOK, a.readFile).
			Media("", "*/*").
			Also(http.StatusPartialContent, "*/*", nil, "The range that was asked for.").
			Also(http.StatusNotModified, "", nil, "It is the one that If-None-Match names."),
		httpapi.Raw("writeFile", "PUT /sandboxes/{id}/files/{path...}", "Write a file from the raw body.", http.StatusNoContent, a.writeFile).Media(anyBytes, ""),
		httpapi.Op("deleteFile", "DELETE /sandboxes/{id}/files/{path...}", "Delete a file or a directory.", http.StatusNoContent, a.removeFile),
		httpapi.Op("listSnapshotFilesOf", "GET /sandboxes/{id}/snapshots/{snapshot}/files", "List a directory of a sandbox's disk at a point in time. It starts no sandbox, and uses none.", http.StatusOK, a.listAt),
		httpapi.Op("listSnapshotFiles", "GET /snapshots/{snapshot}/files", "List a directory of a snapshot.", http.StatusOK, a.listAlone),
		httpapi.Raw("readSnapshotFileOf", "GET /sandboxes/{id}/snapshots/{snapshot}/files/{path...}", "Read a file of a sandbox's disk at a point in time raw; ranges work. It starts no sandbox, and uses none. Links lead within the disk.", http.StatusOK, a.readAt).
			Media("", "*/*").
			Also(http.StatusPartialContent, "*/*", nil, "The range that was asked for.").
			Also(http.StatusNotModified, "", nil, "It is the one that If-None-Match names."),
		httpapi.Raw("readSnapshotFile", "GET /snapshots/{snapshot}/files/{path...}", "Read a file of a snapshot raw; ranges work. Links lead within the snapshot.", http.StatusOK, a.readAlone).
			Media("", "*/*").
			Also(http.StatusPartialContent, "*/*", nil, "The range that was asked for.").
			Also(http.StatusNotModified, "", nil, "It is the one that If-None-Match names."),
		httpapi.Op("diffText", "GET /sandboxes/{id}/diff/text", "What differs in the text of one file between two points in time, by lines. It starts no sandbox, and uses none.", http.StatusOK, a.diffText),
		httpapi.Raw("packFiles", "GET /sandboxes/{id}/archive", "Read a file or a tree as a tar archive: links as links, modes, times. The trailer Sandpit-Left-Out says what is not in it (Unpacked). One that breaks off ends without its last chunk.", http.StatusOK, a.packFiles).
			Media("", v1.ArchiveType),
		httpapi.Op("unpackFiles", "PUT /sandboxes/{id}/archive", "Make files of a tar archive, which is the raw body, below a directory: whatever the archive says, nothing outside of that, no devices, no set-user-id bits.", http.StatusOK, a.unpackFiles).
			Media(v1.ArchiveType, ""),
		httpapi.Op("statFile", "GET /sandboxes/{id}/stat", "All about a file; a link is not followed.", http.StatusOK, a.statFile),
		httpapi.Op("changeFile", "PATCH /sandboxes/{id}/stat", "Change a file's mode, owner, group and attributes, with recursive those of all in a directory. No link is followed: one at the path's end, or on its way, is refused.", http.StatusOK, a.changeFile),
		httpapi.Op("findFiles", "GET /sandboxes/{id}/find", "Find files and directories below a directory by their names. No link is followed.", http.StatusOK, a.findFiles),
		httpapi.Op("searchFiles", "GET /sandboxes/{id}/search", "Find lines of text files below a directory that match a regular expression. No link is followed.", http.StatusOK, a.searchFiles),
		httpapi.Op("replaceInFiles", "POST /sandboxes/{id}/replace", "Replace a text, or what matches a regular expression, in files. Each file is replaced whole or stays as it was, and the answer tells of each.", http.StatusOK, a.replaceInFiles).
			Example(v1.ReplaceInFiles{Files: []string{"main.py"}, Pattern: "localhost", Replacement: "0.0.0.0"}).
			Extend(idempotency.Keyless("what was replaced is not found again as a rule")),
		httpapi.Op("createFileLink", "POST /sandboxes/{id}/links", "Make a link to one file that needs no token and expires: to read it by GET, or with write to write it by PUT, up to a size. Whoever has it acts as the user sandbox.", http.StatusOK, a.createLink).
			Extend(idempotency.Keyless("links are signed and not kept")),
		httpapi.Raw("watchFiles", "GET /sandboxes/{id}/watch", "Tell what changes in a directory as it happens: server-sent events, watching (Watching) first, then one of each WatchEvent's type (WatchEvent), end (WatchEnd) or error (Problem) at last.", http.StatusOK, a.watchFiles).
			Media("", "text/event-stream").Events(watchEventTypes()),
		httpapi.Op("makeDir", "POST /sandboxes/{id}/mkdir", "Make a directory.", http.StatusNoContent, a.makeDir).
			Example(v1.MakeDir{Path: "outputs/charts"}).
			Extend(idempotency.Keyless("twice is as once")),
		httpapi.Op("moveFile", "POST /sandboxes/{id}/move", "Rename or move a file or a directory.", http.StatusNoContent, a.moveFile).
			Example(v1.MoveFile{From: "draft.csv", To: "report.csv"}).
			Extend(idempotency.Keyless("the second finds nothing to move")),
	}
}

// watchEventTypes are the types of the data of a watch's events: one event has the name of each type of change.
func watchEventTypes() map[string]reflect.Type {
	types := map[string]reflect.Type{v1.WatchBegun: reflect.TypeFor[v1.Watching](), v1.WatchEnded: reflect.TypeFor[v1.WatchEnd]()}
	for _, t := range []sandbox.FileEventType{
		sandbox.FileCreated, sandbox.FileModified, sandbox.FileDeleted, sandbox.FileRenamed, sandbox.FileAttributes, sandbox.FileDropped,
	} {
		types[string(t)] = reflect.TypeFor[v1.WatchEvent]()
	}
	return types
}
