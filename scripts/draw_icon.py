"""Draw the integration's icons: a window with a conversation whose older lines fade out.

Run this with the demo's Python, which has Pillow: .venv/demo/bin/python scripts/draw_icon.py
"""

from pathlib import Path

from PIL import Image, ImageDraw

BRAND_FOLDER = Path(__file__).parent.parent / "custom_components" / "windowed_conversation" / "brand"

BLUE = (24, 188, 242, 255)
DARK = (17, 94, 130, 255)
WHITE = (255, 255, 255, 255)

# In pixels. The icon is drawn large and scaled down, which smooths its edges.
CANVAS_PIXELS = 2048

# Speech bubbles from the oldest to the newest: left edge, top, right edge, and opacity (0 to 255).
BUBBLES = ((520, 250, 1180, 60), (860, 600, 1530, 130), (520, 960, 1300, 210), (740, 1320, 1530, 255))
BUBBLE_HEIGHT = 240
FRAME_BOX = (330, 510, 1718, 1690)


def draw_icon() -> Image.Image:
    """Return the icon in the size of the canvas."""
    image = Image.new("RGBA", (CANVAS_PIXELS, CANVAS_PIXELS), (0, 0, 0, 0))
    pen = ImageDraw.Draw(image)
    pen.rounded_rectangle((64, 64, CANVAS_PIXELS - 64, CANVAS_PIXELS - 64), radius=420, fill=BLUE)
    for index, (left, top, right, opacity) in enumerate(BUBBLES):
        layer = Image.new("RGBA", image.size, (0, 0, 0, 0))
        colour = (*(WHITE if index % 2 else DARK)[:3], opacity)
        ImageDraw.Draw(layer).rounded_rectangle((left, top, right, top + BUBBLE_HEIGHT), radius=110, fill=colour)
        image.alpha_composite(layer)
    ImageDraw.Draw(image).rounded_rectangle(FRAME_BOX, radius=120, outline=WHITE, width=72)
    return image


def main() -> None:
    """Write the icon in both sizes that Home Assistant requires."""
    BRAND_FOLDER.mkdir(exist_ok=True)
    image = draw_icon()
    for name, size in (("icon.png", 256), ("icon@2x.png", 512)):
        image.resize((size, size), Image.Resampling.LANCZOS).save(BRAND_FOLDER / name, optimize=True)


if __name__ == "__main__":
    main()
