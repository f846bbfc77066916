// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

// Package oci keeps images that others made: it reads archives in the forms of
// docker save and of OCI image layouts, and makes of an image one complete root
// directory. It knows nothing of sandboxes, tokens or databases.
//
// # On disk
//
//	DIR/.lock                   held shared by each import, exclusively by what removes
//	DIR/layers/DIFFID/files/    a layer's files, unpacked once for all images
//	DIR/layers/DIFFID/layer.json
//	DIR/images/DIGEST12/rootfs  an image's files: hard links to those of its layers
//	DIR/images/DIGEST12/image.json
//	DIR/references.json         which digest each reference means
//	DIR/work/                   what is not finished
//
// A layer and an image appear by one rename of a complete and flushed directory.
// What a killed process left is in work, which Open empties when no other
// process works there. Layers that are whole stay, so that the next try begins
// with them.
//
// # Hard links
//
// The roots of images share the inodes of their layers, so each file is on disk
// and in the page cache once. Nothing may be changed in place below rootfs: what
// is added to an image is a new file under the name.
//
// # What an archive can do
//
// Archives are hostile. Every digest is computed here and compared; sizes and
// counts have bounds, of what is read and of what comes out of it. Names are
// resolved as a chroot would, through [os.Root], so that no link leads out, and
// the last part of a name is never followed. Device nodes are left out: a
// sandbox has a /dev of its own. Of the extended attributes user.* and file
// capabilities are kept. Set-user-id bits are kept too: who may use them is
// for the runtime.
package oci
