package main

import (
	"context"

	heads "github.com/headsapi/heads-go"
)

var orders = map[string]string{"7": "Your order has been shipped.", "8": "Your order is being packed."}

type orderArguments struct {
	Order string `json:"order" jsonschema:"The number of the order."`
}

func orderStatus(_ context.Context, in orderArguments) (string, error) {
	message, known := orders[in.Order]
	if !known {
		return "", heads.ToolError{Message: "There is no order with this number; ask the user to check it"}
	}
	return message, nil
}
