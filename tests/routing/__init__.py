"""Who answers what people say: Home Assistant's intents or the model."""
