// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package docker

import "sandpit.dev/runtime"

// maxPulled bounds the layers that are told of: an Engine makes no container of more.
const maxPulled = 128

// downloading is how much of a layer's work it is to bring it; the rest is to unpack it.
const downloading = 0.8

// pulledLayer is how far a layer is.
type pulledLayer struct {
	done, total int64
	part        float64
	here, ready bool
}

// layersTold returns what takes an Engine's words about layers of a pull, and tells how far all together are. What
// it does not know is of no layer.
func layersTold(tell func(runtime.ImageProgress)) func(layer, status string, done, total int64) {
	if tell == nil {
		return nil
	}
	layers := map[string]*pulledLayer{}
	var order []string // as they became known, which is from the lowest on
	return func(id, status string, done, total int64) {
		l := layers[id]
		if l == nil {
			l = &pulledLayer{}
		}
		if !l.take(status, done, total) || len(layers) >= maxPulled && layers[id] == nil {
			return
		}
		if layers[id] == nil {
			layers[id], order = l, append(order, id)
		}
		p := runtime.ImageProgress{Layers: len(layers)}
		for _, id := range order {
			l := layers[id]
			p.Each = append(p.Each, runtime.LayerProgress{ID: id, Done: l.done, Total: l.total, Here: l.here, Ready: l.ready})
			p.Done, p.Total, p.Part = p.Done+l.done, p.Total+l.total, p.Part+l.part/float64(len(layers))
			if l.ready {
				p.Ready++
			}
		}
		tell(p)
	}
}

// take takes an Engine's words about the layer, and reports whether they are.
func (l *pulledLayer) take(status string, done, total int64) bool {
	const most = 1 << 50 // bytes; a sum of such is a number
	total = min(max(total, 0), most)
	done = min(max(done, 0), total)
	part := 0.0
	if total > 0 {
		part = float64(done) / float64(total)
	}
	switch status {
	case "Pulling fs layer", "Waiting":
	case "Downloading":
		l.done, l.total, l.part = done, total, downloading*part
	case "Verifying Checksum", "Download complete":
		l.done, l.part, l.here = l.total, downloading, true
	case "Extracting": // its figures are of the same bytes
		l.done, l.part, l.here = l.total, downloading+(1-downloading)*part, true
	case "Pull complete", "Already exists":
		l.done, l.part, l.here, l.ready = l.total, 1, true, true
	default:
		return false
	}
	return true
}
