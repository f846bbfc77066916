// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

// Package git runs git's commands inside of sandboxes, above the engine: it checks what a caller asks
// for, keeps credentials where they belong, and reads what git says. It knows no coat.
//
// # Credentials
//
// A user and a password are told to the repository's own server by a helper that git asks, for that
// scheme and host alone; a redirect to another host gets none. The helper reads them of a pipe that git inherits:
// they are in no argument, no variable, no file, no configuration of the repository and no record, and the agent masks
// them in what git prints. The command that has them runs no hook and changes no file of a working tree, since
// filters would run: a clone checks out, and a pull merges, by a second command without them. A program of the same user that
// runs inside meanwhile can read the pipe, or git's memory: what nothing inside may ever see is a secret that is bound to hosts.
//
// # Repositories
//
// What is in a repository is hostile: its configuration, its hooks, the names in it. Whatever it names runs inside, as the
// user, at most; and of that only what a person means who types the command:
//
//   - hooks, with commit, checkout, the merge of a pull, and a push without credentials, unless the request says
//     otherwise
//   - filters and merge drivers, which say what is in files; a program that signs commits; ssh, and what the configuration has in its place
//
// Never: a monitor of the file system, a pager, an editor, a program that asks for passwords, an external diff, a background
// task, a helper of another transport. Submodules are left alone, and a bare repository that lies where a working tree is
// asked for is none: it may have come with a clone. With credentials, the proxy and the checks of certificates are those of the
// environment, whatever the configuration says.
//
// Names reach git after --, by its standard input, or checked so that they are no options; they come back in formats
// for programs, ended by NUL bytes, and one that is not UTF-8 is escaped as in the operations on files.
//
// # Addresses
//
// An address is http, https, ssh, git, what ssh takes as HOST:PATH, or a path inside the sandbox. Helpers
// of other transports (ext::) and options are refused here, and git itself is told to use no other
// transport, whatever its configuration or a redirect says.
//
// # Failures
//
// An error has the reason by which a program tells what happened, of [Reasons]. Git is asked to speak English for that; what a
// remote server says itself, which git marks, has no meaning.
//
// What git prints comes from inside and from a remote server: it is shown as data, in printable
// characters, and bounded.
package git
