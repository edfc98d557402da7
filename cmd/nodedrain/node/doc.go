// Package node has the commands about nodes and their drains.
package node
