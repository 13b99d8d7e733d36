package rpc

import (
	"bufio"
	"encoding/gob"
	"net/rpc"

	"ticketing/raft"
)

// maxUnwritten is how many requests of one connection may be without a written answer. It is more
// than can be worked on: so it is reached only by someone who does not read the answers.
const maxUnwritten = 2 * maxRequests

// codec is net/rpc's gob codec for a server, but for two things. It does not read ahead without end:
// net/rpc starts a goroutine for each request that it reads, and each waits for its turn to write;
// whoever sends requests and reads no answers could fill the memory with them. And it adds to each
// answer to a client what is the same for all, see Roster.
type codec struct {
	conn     *conn
	agreed   func() raft.Index // see Roster
	dec      *gob.Decoder
	enc      *gob.Encoder
	buffer   *bufio.Writer
	requests chan struct{} // one for each that was read and has no written answer
}

func newCodec(c *conn, agreed func() raft.Index) *codec {
	buffer := bufio.NewWriter(c)
	return &codec{
		conn: c, agreed: agreed, dec: gob.NewDecoder(c), enc: gob.NewEncoder(buffer), buffer: buffer,
		requests: make(chan struct{}, maxUnwritten),
	}
}

// ReadRequestHeader waits when there are too many requests without an answer. The wait is over when
// one is written, or cannot be: a Write does not wait for long.
func (c *codec) ReadRequestHeader(r *rpc.Request) error {
	if err := c.dec.Decode(r); err != nil {
		return err
	}
	c.requests <- struct{}{}
	return nil
}

func (c *codec) ReadRequestBody(body any) error { return c.dec.Decode(body) }

func (c *codec) WriteResponse(r *rpc.Response, body any) error {
	defer func() { <-c.requests }()
	if answer, ok := body.(interface{ roster() *Roster }); ok {
		answer.roster().MembersAt = c.agreed()
	}
	err := c.enc.Encode(r)
	if err == nil {
		err = c.enc.Encode(body)
	}
	if err == nil {
		err = c.buffer.Flush()
	}
	if err != nil { // what is half written cannot be mended
		c.conn.fail(err)
	}
	return err
}

func (c *codec) Close() error { return c.conn.Close() }
