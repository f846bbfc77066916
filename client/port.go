// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package client

import (
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"strconv"
	"sync"

	"github.com/coder/websocket"

	v1 "sandpit.dev/api/v1"
	"sandpit.dev/fault"
)

// Ports lists what listens in a sandbox.
func (c *Client) Ports(ctx context.Context, ref string) (*v1.PortList, error) {
	l := new(v1.PortList)
	if _, err := c.call(ctx, request{method: "GET", path: of(ref, "/ports")}, l); err != nil {
		return nil, err
	}
	return l, nil
}

// Preview makes a signed link to what a port serves over HTTP.
func (c *Client) Preview(ctx context.Context, ref string, r v1.CreatePreview) (*v1.Preview, error) {
	p := new(v1.Preview)
	if _, err := c.call(ctx, request{method: "POST", path: of(ref, "/previews"), body: r}, p); err != nil {
		return nil, err
	}
	return p, nil
}

// Previews says who may see what programs in a sandbox serve, and what Host they see.
func (c *Client) Previews(ctx context.Context, ref string) (*v1.Previews, error) {
	p := new(v1.Previews)
	if _, err := c.call(ctx, request{method: "GET", path: of(ref, "/previews")}, p); err != nil {
		return nil, err
	}
	return p, nil
}

// UpdatePreviews changes it; what is left out stays.
func (c *Client) UpdatePreviews(ctx context.Context, ref string, r v1.UpdatePreviews) (*v1.Previews, error) {
	p := new(v1.Previews)
	if _, err := c.call(ctx, request{method: "PATCH", path: of(ref, "/previews"), body: r}, p); err != nil {
		return nil, err
	}
	return p, nil
}

// CreatePreviewLink makes a link to what a port serves over HTTP that can be listed and revoked.
func (c *Client) CreatePreviewLink(ctx context.Context, ref string, r v1.CreatePreviewLink) (*v1.PreviewLink, error) {
	l := new(v1.PreviewLink)
	if _, err := c.call(ctx, request{method: "POST", path: of(ref, "/preview-links"), body: r}, l); err != nil {
		return nil, err
	}
	return l, nil
}

// PreviewLinks lists a sandbox's links to ports, oldest first.
func (c *Client) PreviewLinks(ctx context.Context, ref string) ([]v1.PreviewLink, error) {
	var l v1.PreviewLinkList
	if _, err := c.call(ctx, request{method: "GET", path: of(ref, "/preview-links")}, &l); err != nil {
		return nil, err
	}
	return l.Items, nil
}

// RevokePreviewLink ends a link to a port, by its id, with what is open by it.
func (c *Client) RevokePreviewLink(ctx context.Context, ref, id string) error {
	_, err := c.call(ctx, request{method: "DELETE", path: of(ref, "/preview-links/"+seg(id))}, nil)
	return err
}

// PortConn is a connection to a TCP port in a sandbox. Read and Write may be called concurrently,
// and Close at any time.
type PortConn struct {
	conn *websocket.Conn
	life context.Context // ends with Close
	end  context.CancelFunc

	readMu sync.Mutex
	rest   []byte // read and not yet given
	err    error  // of reading, for ever

	writeMu sync.Mutex
	ended   bool
}

// DialPort connects to a TCP port in a sandbox. ctx bounds only the connecting.
func (c *Client) DialPort(ctx context.Context, ref string, port int) (*PortConn, error) {
	if c.err != nil {
		return nil, c.err
	}
	h := make(http.Header)
	c.authorize(h)
	conn, resp, err := websocket.Dial(ctx, c.base+of(ref, "/ports/"+strconv.Itoa(port)+"/connect"), &websocket.DialOptions{HTTPClient: c.http, HTTPHeader: h})
	if err != nil {
		if resp != nil && resp.StatusCode != http.StatusSwitchingProtocols {
			return nil, errorOf(resp, readSome(resp.Body))
		}
		return nil, c.unanswered(ctx, err)
	}
	conn.SetReadLimit(maxTerminalMessage)
	p := &PortConn{conn: conn}
	p.life, p.end = context.WithCancel(context.Background())
	return p, nil
}

// Read returns what the program sends; io.EOF when it sends nothing more.
func (p *PortConn) Read(b []byte) (int, error) {
	p.readMu.Lock()
	defer p.readMu.Unlock()
	for len(p.rest) == 0 && len(b) > 0 {
		if p.err == nil {
			p.err = p.moreLocked()
		}
		if p.err != nil {
			return 0, p.err
		}
	}
	n := copy(b, p.rest)
	p.rest = p.rest[n:]
	return n, nil
}

// moreLocked reads one message.
func (p *PortConn) moreLocked() error {
	kind, data, err := p.conn.Read(p.life)
	switch {
	case p.life.Err() != nil:
		return net.ErrClosed
	case err != nil:
		return fault.Wrap(fault.Unavailable, err, "the connection to the sandbox's port broke")
	case kind == websocket.MessageBinary:
		p.rest = data
		return nil
	}
	var m v1.PortControl
	if err := json.Unmarshal(data, &m); err != nil {
		return garbled(err)
	}
	switch {
	case m.Error != nil:
		return faultOf(m.Error, "")
	case m.End:
		p.conn.CloseRead(p.life) // somebody has to answer pings while we still send
		return io.EOF
	}
	return nil // of a newer server
}

// Write sends b. It blocks while the program reads nothing.
func (p *PortConn) Write(b []byte) (int, error) {
	p.writeMu.Lock()
	defer p.writeMu.Unlock()
	if p.ended {
		return 0, net.ErrClosed
	}
	// The server bounds one message.
	const most = 256 << 10
	for n := 0; n < len(b); n += most {
		if err := p.conn.Write(p.life, websocket.MessageBinary, b[n:min(n+most, len(b))]); err != nil {
			return n, fault.Wrap(fault.Unavailable, err, "the connection to the sandbox's port broke")
		}
	}
	return len(b), nil
}

// CloseWrite signals the program the end of its input. Calling it twice is fine.
func (p *PortConn) CloseWrite() error {
	p.writeMu.Lock()
	defer p.writeMu.Unlock()
	if p.ended {
		return nil
	}
	p.ended = true
	if err := p.conn.Write(p.life, websocket.MessageText, []byte(`{"end":true}`)); err != nil {
		return fault.Wrap(fault.Unavailable, err, "the connection to the sandbox's port broke")
	}
	return nil
}

// Close ends the connection. Calling it twice is fine.
func (p *PortConn) Close() error {
	p.end()
	_ = p.conn.CloseNow() // the connection has no other user left
	return nil
}
