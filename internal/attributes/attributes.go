// Package attributes decodes maps of device attributes. Packages shims and statestore use it.
//
// The codec decodes all structs of a map into one value and does not clear it in between. A field that was
// left out of one attribute, because it is zero, is then that of the attribute before. A map of pointers has
// the same encoding and a value of its own for each key.
package attributes

import (
	"errors"

	"github.com/hashicorp/go-msgpack/v2/codec"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
)

// node is the part of an encoded [cluster.Node] that has attributes.
type node struct {
	Devices []struct {
		Attributes map[string]*cluster.DeviceAttribute
	}
}

// decode passes over the fields that are not in found.
func decode(encoded []byte, found any) error {
	return codec.NewDecoderBytes(encoded, new(codec.MsgpackHandle)).Decode(found)
}

// OfNode decodes the attributes of the devices of a node again, from its encoding.
func OfNode(encoded []byte, n *cluster.Node) error {
	if !some(n) {
		return nil
	}
	var found node
	if err := decode(encoded, &found); err != nil {
		return err
	}
	return found.put(n)
}

// OfMessage is OfNode for the field Node of an encoded message.
func OfMessage(encoded []byte, n *cluster.Node) error {
	if !some(n) {
		return nil
	}
	var found struct{ Node node }
	if err := decode(encoded, &found); err != nil {
		return err
	}
	return found.Node.put(n)
}

func some(n *cluster.Node) bool {
	if n == nil {
		return false
	}
	for _, g := range n.Devices {
		if g != nil && len(g.Attributes) > 0 {
			return true
		}
	}
	return false
}

func (found *node) put(n *cluster.Node) error {
	if len(found.Devices) != len(n.Devices) {
		return errors.New("the devices are there twice")
	}
	for i, g := range n.Devices {
		if g == nil {
			continue
		}
		//lint:order each key has a value of its own
		for name := range g.Attributes {
			a := found.Devices[i].Attributes[name]
			if a == nil {
				a = &cluster.DeviceAttribute{}
			}
			g.Attributes[name] = *a
		}
	}
	return nil
}
