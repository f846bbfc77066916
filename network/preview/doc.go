// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

// Package preview shows what programs in sandboxes serve over HTTP to people and
// programs outside, by one of two addresses:
//
//	http://{port}-{id}.{domain}/…        by host name
//	http://{server}/preview/{id}/{port}/…  by path
//
// A preview by host name is an origin of its own: to a browser it has nothing in
// common with the server, nor with another preview. It is what links name where
// the domain can be reached, and what a browser that opens the path is sent to.
//
// # By path
//
// The path is for programs, and for where no such names can be had. The prefix
// is taken off before the program sees a request, and put back into Location,
// Content-Location and the paths of cookies. What the path cannot do:
//
//   - Links in pages are left alone: a page that names /app.js instead of app.js
//     asks the server for it. A program whose prefix can be configured should use it;
//     each request has it as X-Forwarded-Prefix.
//   - A page has no origin of its own, since it would be the server's: each answer says
//     so by Content-Security-Policy. It has no cookies, no storage and no service worker, and is to others,
//     and to the server, a page from elsewhere.
//
// A browser that opens a link by path is sent to /preview/{token}/…, the link's token in place of id and port: what the
// page loads by relative addresses is let in by that. The page may read what it loads there, as though it had
// the program's origin.
//
// # Who may
//
// Nothing is public. A request needs one of:
//
//   - a token of the API with the scope sandboxes:write for the sandbox's project,
//     as Authorization: Bearer or X-Sandpit-Token
//   - a signed link's token (see [Links]), as one of these, as ?sandpit_token=, or in the path
//   - the sandbox's own token, where it has one, which is good for each of its ports and until it is taken back (see
//     [Links.SandboxToken]), as a link's
//   - by host name, the cookie that a browser got for a link
//
// A token of the API is refused in an address, which the program's pages and
// their service workers can read.
//
// A browser that opens a link by host name is given the cookie, which is good for this one
// preview, and sent to the same address without the token. With a cookie alone,
// requests that pages of other origins make are refused. What streams or is a
// WebSocket is cut when the link expires.
//
// The program sees none of it: not the token, not the cookie, not our bearer
// token. It cannot set a cookie of ours, nor any for other hosts.
//
// Who may show a preview in a frame, [Framers] says: for the host name of a link, which everybody may open who knows it.
//
// # What is passed on
//
// HTTP/1.1 in full: bodies of any length, streams without delay, WebSockets and
// other upgrades. HTTP/2 and CONNECT are not. A connection on which nothing moves
// for a quarter of an hour is closed.
package preview
